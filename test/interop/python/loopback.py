# SPDX-License-Identifier: Apache-2.0
"""Brings up the loopback interface of a new network namespace and runs a command.

It does what "ip link set lo up" does; not every machine has ip.
"""

import fcntl
import os
import socket
import struct
import sys

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    request = struct.pack("16sh22x", b"lo", 0)
    flags = struct.unpack("16sh22x", fcntl.ioctl(s, SIOCGIFFLAGS, request))[1]
    fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", flags | IFF_UP))
os.execv(sys.argv[1], sys.argv[1:])
