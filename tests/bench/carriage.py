"""What an object store does to a call or a reply: its bytes lie in other memory afterwards."""

from coloop.workers.packing import Packed


def carried(packed: Packed) -> Packed:
    """As it arrives in another process."""
    return Packed(head=packed.head, buffers=[bytes(buffer) for buffer in packed.buffers])
