"""Make an environment from pins: `environment.py FOLDER REQUIREMENTS [PIP ARGUMENTS]`.

The file FOLDER/installed is written last, so an interrupted run is simply repeated by `make`.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLDEST = (3, 11)


def obstacle() -> str:
    """What this Python lacks, as a sentence with the cure; "" when it will do."""
    name = "python{}.{}".format(*sys.version_info[:2])
    if sys.version_info < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        return f"this is {name}; the book needs {wanted} or newer: make book PYTHON=python{wanted}"
    if find_spec("ensurepip") is None:
        return f"{name} cannot make virtual environments: sudo apt-get install {name}-venv"
    return ""


def install(folder: Path, pins: Path, pip_args: list[str]) -> None:
    """Create or repair the environment: the pinned packages, then this package, editable."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    pip += ["install", "--no-compile", *pip_args]  # Python compiles what it needs
    print(f"Installing the pinned packages into {folder}; the first time takes a few minutes.")
    sys.stdout.flush()
    subprocess.run([*pip, "-r", pins], check=True)
    subprocess.run([*pip, "--no-deps", "-e", ROOT], check=True)
    (folder / "installed").touch()


def main() -> int:
    problem = obstacle()
    if problem:
        print(problem, file=sys.stderr)
        return 1
    try:
        install(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
