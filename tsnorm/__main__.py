"""`python -m tsnorm`, and what `torchrun -m tsnorm` runs."""

from tsnorm.cli.main import main

if __name__ == "__main__":
    main()
