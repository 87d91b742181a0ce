// SPDX-License-Identifier: Apache-2.0
#include "session/probe.h"

#include <algorithm>
#include <filesystem>

#include "base/hash.h"
#include "base/log.h"
#include "base/sealed_file.h"
#include "emit/spirv/emit.h"
#include "kernel/probe.h"
#include "pumice/error.h"
#include "runtime/transfer.h"

namespace pumice {
namespace {

// The probes compile for a device of which nothing is known yet, so that its own instructions run.
kernel::ProbeOutput run(runtime::Device& device, const DeviceTraits& plain,
                        const kernel::Probe& p) {
  runtime::KernelInfo info;
  info.name = p.name;
  info.workgroup = p.kernel.workgroup;
  info.subgroup = p.kernel.group;
  info.full_subgroups = p.kernel.group != 0;
  info.argument_bytes = p.kernel.argument_bytes();
  const uint64_t in_bytes = std::max<size_t>(p.input.size(), 1) * 4, out_bytes = p.output_words * 4;
  const runtime::Buffer in = device.alloc(in_bytes, runtime::Memory::device, "probe input");
  const runtime::Buffer out = device.alloc(out_bytes, runtime::Memory::device, "probe output");
  const runtime::Kernel kernel =
      device.load({runtime::Code::Format::spirv, spirv::emit(p.kernel, plain)}, info);
  if (!p.input.empty()) {
    runtime::Uploader uploader(device);
    uploader.upload(in, 0, p.input.data(), in_bytes);
    uploader.wait();
  }
  runtime::Dispatch d;
  d.kernel = kernel;
  d.groups = {p.groups, 1, 1};
  const uint64_t addresses[2] = {device.address(in), device.address(out)};
  d.arguments.resize(sizeof addresses);
  std::copy_n(reinterpret_cast<const uint8_t*>(addresses), sizeof addresses, d.arguments.begin());
  const runtime::Command commands[] = {d};
  const runtime::Recording recording = device.record(commands);
  device.submit(recording);
  device.wait(recording);
  kernel::ProbeOutput words(p.output_words);
  runtime::download(device, out, 0, words.data(), out_bytes);
  device.release(recording);
  device.unload(kernel);
  device.free(in);
  device.free(out);
  return words;
}

}  // namespace

void probe(runtime::Device& device) {
  DeviceTraits plain = device.traits();
  plain.numerics = Numerics{};
  const std::filesystem::path folder = cache_place("probes");
  const std::filesystem::path file = folder / hash_of(to_json(plain)).hex();
  if (const auto text = folder.empty() ? std::nullopt : unsealed(read_cached(file))) {
    try {
      const DeviceTraits kept = traits_from_json(*text);
      if (kept.name == plain.name && kept.driver == plain.driver) {
        device.set_probed(kept.numerics, kept.matrices);
        return;
      }
    } catch (const Error&) {  // an entry of another form is a miss
    }
  }
  log(LogLevel::info, "probing the arithmetic of {}", plain.name);
  const auto outputs = [&](const std::vector<kernel::Probe>& probes) {
    std::vector<kernel::ProbeOutput> all;
    for (const kernel::Probe& p : probes) all.push_back(run(device, plain, p));
    return all;
  };
  DeviceTraits found = plain;
  found.numerics = kernel::evaluate_numerics(plain, outputs(kernel::numerics_probes(plain)));
  found.matrices = kernel::evaluate_maps(plain, outputs(kernel::map_probes(plain)));
  device.set_probed(found.numerics, found.matrices);
  if (!folder.empty()) write_cached(file, sealed(to_json(found)));
}

}  // namespace pumice
