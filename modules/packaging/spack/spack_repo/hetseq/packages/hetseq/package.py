import pathlib

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *

# Spack builds the checkout that holds this file (below modules/packaging).
CHECKOUT = pathlib.Path(__file__).resolve().parents[7]


class Hetseq(CMakePackage, CudaPackage):
    """Trains neural networks data-parallel on unlike GPUs, with one MPI rank per device. Each
    rank gets the share of the batch that it computes in the same time as the others."""

    homepage = CHECKOUT.joinpath("README.md").as_uri()
    git = CHECKOUT.as_uri()

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.21:", type="build")
    depends_on("ninja", type="build")
    depends_on("nlohmann-json@3.9:", type="build")
    depends_on("xxhash@0.8:", type="build")

    depends_on("mpi@3:")
    depends_on("hdf5@1.10.7:+mpi")
    depends_on("boost@1.71:+program_options")
    depends_on("spdlog")
    depends_on("utf8proc@2.6:")
    depends_on("zlib-api")
    depends_on("sentencepiece@0.1.97:")

    # An older Spack has no py-torch 2.7. Then declare the one of the site as an external.
    depends_on("py-torch@2.7:~cuda", when="~cuda")
    with when("+cuda"):
        depends_on("cuda@12:")
        depends_on("nccl")
        for _arch in CudaPackage.cuda_arch_values:
            depends_on(f"py-torch@2.7:+cuda cuda_arch={_arch}", when=f"cuda_arch={_arch}")

    conflicts("%gcc@:11", msg="hetseq is C++20: g++ 12 or later")
    conflicts("cuda_arch=none", when="+cuda", msg="name the GPUs: cuda_arch=70,80,90")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define("HETSEQ_BUILD_TESTS", False),
            self.define("HETSEQ_INSTALL_LIBTORCH", False),
            self.define_from_variant("HETSEQ_USE_CUDA", "cuda"),
        ]
        if self.spec.satisfies("+cuda"):
            architectures = self.spec.variants["cuda_arch"].value
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", ";".join(architectures)))
            args.append(self.define("NCCL_ROOT", self.spec["nccl"].prefix))
        return args

    def setup_run_environment(self, env):
        env.set("HETSEQ_INPUTS", self.prefix.share.hetseq.inputs)
        env.prepend_path("PYTHONPATH", self.prefix.lib.hetseq.python)
