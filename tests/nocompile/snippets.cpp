// SPDX-License-Identifier: Apache-2.0
// Mistakes that the language must not let through the compiler. run.cmake compiles this file once
// as it stands (WRONG is 0: that must compile, so that a mistake here is seen) and once for each
// number of a WRONG below, which must not compile.
#include "kernel/builder.h"

namespace pumice::kernel {

void snippets(Builder& k, Ptr p, Ptr q, TileRef tile, Var var, Val i, Val j, Val condition) {
  // What touches memory is a statement of its own: C++ does not order a call's arguments.
#if WRONG == 1
  Val sum = p.load(i) + p.load(j);
#elif WRONG == 2
  Val sum = fma(p.load(i), q.load(i), i);
#elif WRONG == 3
  p.store(i, q.load(j));
#elif WRONG == 4
  p.store(q.load(i), j);
#elif WRONG == 5
  tile.store(i, j, tile.load(j, i));
#elif WRONG == 6
  Val loaded = k.uniform(p.load(i));
#elif WRONG == 7
  Val doubled = p.load(i) * 2;
#elif WRONG == 8
  var = p.load(i);
#else
  Val a = p.load(i);
  Val b = q.load(j);
  Val sum = fma(a, b, 2.0) + a * 2;
  p.store(i, sum);
  Val shared = tile.load(j, i);
  tile.store(i, j, shared);
  var = a;
#endif

  // A value of the kernel is no value of C++.
#if WRONG == 9
  if (condition) p.store(i, j);
#elif WRONG == 10
  while (i < j) p.store(i, j);
#elif WRONG == 11
  Val both = condition && i < j;
#elif WRONG == 12
  Val one = condition || i < j;
#elif WRONG == 13
  Val chosen = condition ? 1 : i;
#elif WRONG == 14
  const int number = i;
#else
  Val both = condition & (i < j);
  k.if_(both, [&] { p.store(i, j); });
  Val chosen = select(condition, 1, i);
#endif

    // Only a var can be set, and a Val is never a number that nobody gave a type.
#if WRONG == 15
  i = 5;
#elif WRONG == 16
  i += 1;
#elif WRONG == 17
  Val five = 5;
#elif WRONG == 18
  i[0] = j;
  i++;
#elif WRONG == 19
  Ptr moved = p + 4;
#else
  var = 5;
  Val five = k.constant(DType::u32, 5);
  i = j;  // the name now stands for another value
#endif
}

}  // namespace pumice::kernel
