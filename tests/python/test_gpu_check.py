"""scripts/gpu_check with stand-ins for the programs, LibTorch and nvidia-smi: what it runs, writes and says."""
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/gpu_check"
REPORT = """<testsuites><testsuite><testcase classname="t" name="mix_CUDA: values" time="1.5"/>
<testcase classname="t" name="mix_CUDA: gradients" time="0.5">{failure}</testcase></testsuite></testsuites>"""
FIGURES = {"tokens_per_second": {"median": 90000.0, "min": 89000.0, "max": 91000.0}, "ratio_to_transformer": 0.99,
           "bound_fraction": 0.9, "peak_memory_bytes": 2**34}


def write_program(path, body):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\nimport json, os, pathlib, sys, time\nargs = sys.argv[1:]\n{body}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def machine(tmp_path):
    """A machine with a GPU, a bundle and a LibTorch, none of them real."""
    bundle, torch = tmp_path / "bundle", tmp_path / "site/torch"
    bundle.mkdir()
    shutil.copy2(SCRIPT, bundle / "gpu_check")
    (bundle / "bundle.json").write_text(json.dumps({"commit": "abc", "torch": "2.11.0"}))
    (torch / "lib").mkdir(parents=True)
    (torch / "lib/libtorch_cuda.so").touch()
    header = torch / "include/torch/headeronly/version.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 11\n#define TORCH_VERSION_PATCH 0\n")
    write_program(tmp_path / "path/nvidia-smi", "print('NVIDIA H200, 143771 MiB, 580.1')")
    write_tests(bundle, "")
    write_program(bundle / "bin/satformer", f"""
assert args[0] == 'bench' and os.environ['LD_LIBRARY_PATH'].startswith({str(bundle / 'lib')!r})
batch = int(args[args.index('--batch') + 1])
if batch > 4:
    sys.exit('CUDA out of memory. Tried to allocate')
pathlib.Path(args[args.index('--json') + 1]).write_text(json.dumps(dict(architectures=dict(satformer={FIGURES!r}), args=args)))
""")
    return tmp_path


def write_tests(bundle, failure):
    write_program(bundle / "bin/satformer_tests", f"""
assert os.environ['SATFORMER_REQUIRE_CUDA'] == '1' and args[0] == '*_CUDA*'
pathlib.Path(args[args.index('-o') + 1]).write_text({REPORT.format(failure=failure)!r})
sys.exit({1 if failure else 0})
""")


def run(machine, *arguments):
    env = {**os.environ, "PATH": f"{machine / 'path'}:{os.environ['PATH']}",
           "SATFORMER_TORCH_DIR": str(machine / "site/torch")}
    done = subprocess.run([sys.executable, machine / "bundle/gpu_check", "run", *arguments], cwd=machine, env=env,
                          capture_output=True, text=True)
    file = machine / "gpu_check.json"
    return done, json.loads(file.read_text()) if file.exists() else None


def test_tests_and_benchmark(machine):
    done, result = run(machine)
    assert done.returncode == 0, done.stderr
    assert result["passed"] and result["commit"] == "abc" and result["gpu"]["name"] == "NVIDIA H200"
    assert result["tests"]["count"] == 2 and result["tests"]["failed"] == 0
    assert result["bench"]["batch"] == 4 and list(result["bench"]["errors"]) == ["8"]  # 8 did not fit
    assert result["bench"]["architectures"]["satformer"] == FIGURES
    given = result["bench"]["args"]
    assert given[given.index("--size") + 1] == "large" and given[given.index("--seq") + 1] == "4096"
    assert given[given.index("--dtype") + 1] == "bfloat16" and given[given.index("--architectures") + 1] == "all"
    assert "90,000 tokens/s" in done.stdout and done.stdout.rstrip().endswith("passed")


def test_only_the_tests(machine):
    done, result = run(machine, "--no-bench")
    assert done.returncode == 0 and result["passed"] and "bench" not in result


def test_a_failed_test_is_named_and_the_benchmark_runs_nevertheless(machine):
    write_tests(machine / "bundle", '<failure message="x">values differ</failure>')
    done, result = run(machine)
    assert done.returncode == 1 and not result["passed"] and result["tests"]["failed"] == 1
    assert "failed: mix_CUDA: gradients: values differ" in done.stdout
    assert result["bench"]["passed"]


def test_tests_that_crash(machine):
    write_program(machine / "bundle/bin/satformer_tests", "sys.exit('illegal memory access')")
    done, result = run(machine, "--no-bench")
    assert done.returncode == 1 and result["tests"]["error"] == "illegal memory access"


def test_a_benchmark_that_fails_is_not_tried_again(machine):
    write_program(machine / "bundle/bin/satformer", "sys.exit('unknown flag')")
    done, result = run(machine)
    assert done.returncode == 1 and result["bench"]["errors"] == {"8": "unknown flag"}


def test_time_is_limited(machine):
    write_program(machine / "bundle/bin/satformer", "time.sleep(600)")
    done, result = run(machine, "--seconds", "12")
    assert done.returncode == 1 and "out of time" in result["bench"]["errors"]["8"]
    assert result["tests"]["passed"]


def test_no_gpu(machine):
    write_program(machine / "path/nvidia-smi", "sys.exit(9)")
    done, result = run(machine)
    assert done.returncode == 1 and result is None
    assert done.stderr == "gpu_check: no GPU: nvidia-smi finds none\n"


def test_another_libtorch(machine):
    header = machine / "site/torch/include/torch/headeronly/version.h"
    header.write_text(header.read_text().replace("11", "12"))
    done, _ = run(machine)
    assert done.returncode == 1 and "LibTorch 2.11.0 is needed" in done.stderr and "is 2.12.0" in done.stderr


def test_no_bundle(machine):
    (machine / "bundle/bin/satformer").unlink()
    done, _ = run(machine)
    assert done.returncode == 1 and "is no bundle: bin/satformer is missing" in done.stderr


def test_usage():
    for arguments in ([], ["walk"], ["run", "--seconds", "soon"]):
        done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True)
        assert done.returncode == 2 and "usage: gpu_check" in done.stderr


def test_prepare_without_a_build(tmp_path):
    done = subprocess.run([sys.executable, SCRIPT, "prepare", "--build", tmp_path, "--bundle", tmp_path / "out"],
                          capture_output=True, text=True)
    assert done.returncode == 1 and "bin/satformer is missing: build with CUDA first" in done.stderr
    assert not (tmp_path / "out").exists()


def test_prepare(tmp_path):
    build = pathlib.Path(os.environ["SATFORMER_CLI"]).parent.parent
    if not all((build / file).exists() for file in ("bin/satformer", "bin/satformer_tests", "lib/libsatformer_ops_cuda.so")):
        pytest.skip("not built with CUDA, tests and executable")
    bundle = tmp_path / "bundle"
    done = subprocess.run([sys.executable, SCRIPT, "prepare", "--build", build, "--bundle", bundle], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    names = {str(path.relative_to(bundle)) for path in bundle.rglob("*")}
    assert {"bin/satformer", "bin/satformer_tests", "lib/libsatformer.so", "lib/libsatformer_ops_cuda.so", "gpu_check",
            "lib/libsentencepiece.so.0", "configs/satformer/large.json"} <= names
    assert not any("torch" in name or "cudart" in name for name in names)
    # With its own libraries and LibTorch's alone the program starts.
    torch = next((ROOT / ".venv/lib").glob("python3*/site-packages/torch"))
    path = f"{bundle / 'lib'}:{torch / 'lib'}:{torch.parent / 'nvidia/cu13/lib'}"
    version = subprocess.run([bundle / "bin/satformer", "--version"], env={"LD_LIBRARY_PATH": path}, capture_output=True,
                             text=True)
    assert version.returncode == 0 and "satformer" in version.stdout
