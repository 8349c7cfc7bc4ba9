"""Run `fake_gpu_jobs` in a PyTorch that is built for CPUs: `python tests/fake_gpu.py [--all]`.

A backward pass of fake tensors on a GPU requests the GPU's streams. Therefore a few lines of C++ report that there is a
GPU. They need g++, and must be loaded before torch is imported.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

HOOKS = r"""
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/FakeGuardImpl.h>

namespace at {
struct CUDAHooks : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex current_device() const override { return 0; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  Generator getNewGenerator(DeviceIndex) const override { return make_generator<CPUGeneratorImpl>(0); }
};
REGISTER_CUDA_HOOKS(CUDAHooks)
}
static c10::impl::DeviceGuardImplRegistrar guard(c10::kCUDA, new c10::impl::FakeGuardImpl<c10::kCUDA>());
"""


def pretend() -> None:
    """Give this process a GPU that does not exist."""
    spec = find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    torch_folder = Path(spec.origin).parent
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "hooks.cpp").write_text(HOOKS)
        command = ["g++", "-shared", "-fPIC", "-std=c++20", "hooks.cpp", "-o", "hooks.so", "-lc10", "-ltorch_cpu"]
        command += [f"-I{torch_folder / 'include'}", f"-L{torch_folder / 'lib'}"]
        subprocess.run(command, check=True, cwd=folder)
        ctypes.CDLL(str(torch_folder / "lib" / "libtorch_global_deps.so"), mode=ctypes.RTLD_GLOBAL)
        for name in (torch_folder / "lib" / "libc10.so", torch_folder / "lib" / "libtorch_cpu.so", "hooks.so"):
            ctypes.CDLL(str(Path(folder) / name))


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parent / "agents" / "training"))
    pretend()
    from fake_gpu_jobs import main

    main("--all" in sys.argv)
