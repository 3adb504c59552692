"""The secret seed of a release: where it comes from, and what is derived from it.

Whoever knows the seed can undo random choices, so a release holds only a commitment to it.
"""

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from anon_spark.errors import SpecError

VARIABLE = "ANON_SPARK_SEED"
FILE_VARIABLE = "ANON_SPARK_SEED_FILE"


@dataclass(frozen=True)
class Secret:
    """A secret, and keys derived from it for one purpose each."""

    value: bytes = field(repr=False)

    def key(self, purpose: str) -> bytes:
        """A key of 32 bytes that tells nothing of the secret or of other keys."""
        return hmac.new(self.value, purpose.encode(), hashlib.sha256).digest()

    def generator(self, purpose: str) -> np.random.Generator:
        """A stream of random numbers that depends on the secret and the purpose alone."""
        return np.random.Generator(np.random.Philox(int.from_bytes(self.key(purpose)[:16])))

    def commitment(self, nonce: bytes) -> str:
        """A commitment that binds to the secret and, while the nonce is kept, hides it."""
        return hashlib.sha256(nonce + self.value).hexdigest()


def find_secret(seed: int | None) -> Secret:
    """The seed of the spec (for demonstrations), else of the environment or a file, else a new one.

    Raises:
        SpecError: The file that the environment names cannot be read or is empty.
    """
    if seed is not None:
        return Secret(b"spec:" + str(seed).encode())
    if os.environ.get(VARIABLE):
        return Secret(b"given:" + os.environ[VARIABLE].encode())
    path = os.environ.get(FILE_VARIABLE)
    if path:
        try:
            text = Path(path).read_bytes().strip()
        except OSError as error:
            raise SpecError(
                f"{FILE_VARIABLE}: {path!r} cannot be read ({error.strerror}); "
                "name a readable file or unset the variable"
            ) from None
        if not text:
            raise SpecError(f"{FILE_VARIABLE}: {path!r} is empty; write a long random text into it")
        return Secret(b"given:" + text)
    return Secret(secrets.token_bytes(32))
