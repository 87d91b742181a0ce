// SPDX-License-Identifier: Apache-2.0
// The compiled part of fmt, once for the whole program. Debian ships that part only as a shared
// library, and header-only use compiles it anew in every file (3 to 4 seconds each).
#include <fmt/format-inl.h>

// What the headers promise to be instantiated elsewhere.
template auto fmt::detail::thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto fmt::detail::thousands_sep_impl<wchar_t>(locale_ref) -> thousands_sep_result<wchar_t>;
template auto fmt::detail::decimal_point_impl(locale_ref) -> char;
template auto fmt::detail::decimal_point_impl(locale_ref) -> wchar_t;
