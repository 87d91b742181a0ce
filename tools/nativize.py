# SPDX-License-Identifier: Apache-2.0
"""nativize.py SOURCE TARGET PATCHELF

Copies the software Vulkan driver, the Vulkan loader and the validation layer of a newer Debian,
with all libraries that they need, from SOURCE to TARGET, changed so that programs of this system,
with its older C and C++ libraries, can load them:

- a symbol version that this system's library does not define is marked weak where it is needed, so
  that the dynamic loader does not refuse the file;
- a shim library defines the few symbols behind those versions, each a jump to the function that
  this system has;
- libraries that the driver never calls for our purposes (a solver, line editing) become stubs.

Fails, naming the symbol, where a symbol has no counterpart here. x86-64 and AArch64.
"""

import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

DRIVER, LAYER, LOADER = "libvulkan_lvp.so", "libVkLayer_khronos_validation.so", "libvulkan.so.1"
SHIM = "libnewer-abi.so"
STUBBED = ("libz3.so", "libedit.so")
SYSTEM = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libdl.so.2",
          "libpthread.so.0", "librt.so.1")

# What is no jump to a function of the same meaning.
WRITTEN_OUT = {
    # Newer libstdc++ initialises cout and friends by a call, older by an object in each file.
    "_ZSt21ios_base_library_initv":
        'extern "C" void shim_{n}() {{ static std::ios_base::Init init; }}',
    "__cxa_call_terminate":
        'extern "C" void shim_{n}(void* e) {{ if (e) abi::__cxa_begin_catch(e); std::terminate(); }}',
}


class Elf:
    """The dynamic symbols and versions of a 64-bit little-endian ELF file."""

    DYNAMIC, DYNSYM, VERDEF, VERNEED, VERSYM = 6, 11, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF

    def __init__(self, path):
        self.path = path
        self.data = bytearray(pathlib.Path(path).read_bytes())
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise SystemExit(f"{path} is no 64-bit little-endian ELF file")
        (offset,) = struct.unpack_from("<Q", self.data, 40)
        size, count = struct.unpack_from("<HH", self.data, 58)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, offset + i * size)
                         for i in range(count)]

    def section(self, kind):
        """(offset, size, offset of its string table), or None."""
        for s in self.sections:
            if s[1] == kind:
                return s[4], s[5], self.sections[s[6]][4]
        return None

    def text(self, at):
        return self.data[at:self.data.index(0, at)].decode()

    def needed(self):
        at, size, names = self.section(self.DYNAMIC)
        for i in range(at, at + size, 16):
            tag, value = struct.unpack_from("<QQ", self.data, i)
            if tag == 1:
                yield self.text(names + value)

    def required_versions(self):
        """Yields (library, version, number, offset of the flags) of each version needed."""
        found = self.section(self.VERNEED)
        if found is None:
            return
        entry, _, names = found
        while True:
            _, count, library, first, step = struct.unpack_from("<HHIII", self.data, entry)
            at = entry + first
            for _ in range(count):
                _, _, number, version, following = struct.unpack_from("<IHHII", self.data, at)
                yield self.text(names + library), self.text(names + version), number, at + 4
                at += following
            if step == 0:
                return
            entry += step

    def defined_versions(self):
        """Version number -> name."""
        found = self.section(self.VERDEF)
        result = {}
        if found is None:
            return result
        at, _, names = found
        while True:
            _, _, number, _, _, first, step = struct.unpack_from("<HHHHIII", self.data, at)
            (name,) = struct.unpack_from("<I", self.data, at + first)
            result[number] = self.text(names + name)
            if step == 0:
                return result
            at += step

    def symbols(self):
        """Yields (name, is defined, version number) of each dynamic symbol."""
        at, size, names = self.section(self.DYNSYM)
        versions = self.section(self.VERSYM)
        for i in range(1, size // 24):
            name, _, _, index = struct.unpack_from("<IBBH", self.data, at + 24 * i)
            number = struct.unpack_from("<H", self.data, versions[0] + 2 * i)[0] if versions else 1
            yield self.text(names + name), index != 0, number & 0x7FFF


def system_library(name):
    path = subprocess.run(["g++", "-print-file-name=" + name], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()
    return Elf(path) if os.path.isabs(path) else None


def copy_closure(source, target):
    """Copies the roots and what they need; returns (copied names, stubbed names)."""
    todo, copied, stubs = [DRIVER, LAYER, LOADER], [], []
    while todo:
        name = todo.pop()
        if name in copied or name in stubs or name in SYSTEM or name.startswith("ld-linux"):
            continue
        if name.startswith(STUBBED):
            stubs.append(name)
            continue
        path = target / name
        shutil.copyfile(source / name, path)
        path.chmod(0o755)
        copied.append(name)
        todo += Elf(path).needed()
    return copied, stubs


def weaken(elf, system):
    """Marks weak what the system does not define; returns {symbol: version} behind it."""
    missing = {}
    for library, version, number, flags_at in elf.required_versions():
        if library in system and version not in system[library].defined_versions().values():
            flags = struct.unpack_from("<H", elf.data, flags_at)[0]
            struct.pack_into("<H", elf.data, flags_at, flags | 2)  # VER_FLG_WEAK
            missing[number] = version
    if missing:
        pathlib.Path(elf.path).write_bytes(elf.data)
    return {name: missing[number] for name, defined, number in elf.symbols()
            if not defined and number in missing}


def build_library(path, source, *options):
    subprocess.run(["g++", "-shared", "-fPIC", "-O1", "-fno-builtin", "-x", "c++", "-",
                    f"-Wl,-soname,{path.name}", "-o", str(path), *options],
                   input=source, text=True, check=True)


def build_shim(target, wanted, system):
    """wanted: {symbol: version}. Each becomes a jump to this system's function."""
    here = {name: elf.defined_versions().get(number)
            for elf in system.values() for name, defined, number in elf.symbols() if defined}
    jump = "b" if os.uname().machine == "aarch64" else "jmp"
    at_plt = "" if jump == "b" else "@PLT"
    lines = ["#include <cstdlib>", "#include <cxxabi.h>", "#include <exception>", "#include <iostream>"]
    for n, (symbol, version) in enumerate(sorted(wanted.items())):
        if symbol in WRITTEN_OUT:
            lines.append(WRITTEN_OUT[symbol].format(n=n))
        else:
            function = re.sub("^__isoc23_", "", symbol)
            if function not in here:
                raise SystemExit(f"{symbol}@{version} has no counterpart in this system's libraries")
            lines.append(f'__asm__(".symver old_{n},{function}@{here[function]}\\n'
                         f'.globl shim_{n}\\n.type shim_{n},%function\\n'
                         f'shim_{n}: {jump} old_{n}{at_plt}\\n");')
        lines.append(f'__asm__(".symver shim_{n},{symbol}@@{version}");')
    by_version = {}
    for symbol, version in wanted.items():
        by_version.setdefault(version, []).append(symbol)
    script = target / "shim.map"
    script.write_text("".join(f"{version} {{ global: {'; '.join(symbols)}; local: *; }};\n"
                              for version, symbols in sorted(by_version.items())))
    build_library(target / SHIM, "\n".join(lines) + "\n", f"-Wl,--version-script={script}",
                  "-Wl,--no-as-needed", "-lm", "-ldl", "-lpthread")
    script.unlink()


def build_stubs(source, target, stubs, copied):
    undefined = {name for library in copied for name, defined, _ in Elf(target / library).symbols()
                 if not defined}
    for stub in stubs:
        names = sorted({name for name, defined, _ in Elf(source / stub).symbols() if defined} & undefined)
        build_library(target / stub, "".join(f'extern "C" void {n}() {{ __builtin_trap(); }}\n'
                                             for n in names))


def main():
    source, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    patchelf = sys.argv[3]
    shutil.rmtree(target, ignore_errors=True)
    (target / "loader").mkdir(parents=True)
    system = {name: elf for name in SYSTEM if (elf := system_library(name)) is not None}
    copied, stubs = copy_closure(source, target)
    build_stubs(source, target, stubs, copied)
    wanted, shimmed = {}, []
    for name in copied:
        missing = weaken(Elf(target / name), system)
        if missing:
            wanted.update(missing)
            shimmed.append(name)
    build_shim(target, wanted, system)
    shutil.move(target / LOADER, target / "loader" / LOADER)
    for name in copied:
        where = "loader/" + name if name == LOADER else name
        path = "$ORIGIN/.." if name == LOADER else "$ORIGIN"
        shim = ["--add-needed", SHIM] if name in shimmed else []
        subprocess.run([patchelf, "--set-rpath", path, *shim, str(target / where)], check=True)
    clean = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    for where in (DRIVER, LAYER, "loader/" + LOADER):  # every symbol must resolve, now
        load = f"import ctypes, os; ctypes.CDLL({str(target / where)!r}, mode=os.RTLD_NOW)"
        subprocess.run([sys.executable, "-c", load], check=True, env=clean)


main()
