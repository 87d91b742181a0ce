# SPDX-License-Identifier: Apache-2.0
"""What scripts/demo.sh needs besides pumice, with Python's standard library alone.

    demo_data.py input LINE.pgm INPUT.npy             a picture as the network wants it
    demo_data.py judge LINE.pgm LINE.json OUTPUT.npy  prints the verdict; exit status 1 where it is
                                                      wrong or too far from the float64 reference
"""

import array
import ast
import json
import math
import pathlib
import re
import struct
import sys

HEIGHT, WIDTH = 48, 192  # what the network was trained on
ANGLES = (0, 180)        # what its two outputs stand for
TOLERANCE = 1e-5


def fail(text):
    raise SystemExit(f"demo: {text}")


def read_pgm(path):
    """Rows of grey values 0..255 of a binary PGM."""
    data = pathlib.Path(path).read_bytes()
    header = re.match(rb"P5\s+(\d+)\s+(\d+)\s+255\s", data)
    if not header:
        fail(f"{path} is no binary PGM with 255 as its largest value")
    width, height = int(header[1]), int(header[2])
    grey = data[header.end():]
    if len(grey) != width * height:
        fail(f"{path} has {len(grey)} grey values, wanted {width} x {height}")
    return [grey[y * width:(y + 1) * width] for y in range(height)]


def network_input(path):
    """float32 [1, 3, HEIGHT, WIDTH]: white is 1, black -1, what is right of the picture 0."""
    rows = read_pgm(path)
    if len(rows) != HEIGHT or len(rows[0]) > WIDTH:
        fail(f"{path} is {len(rows[0])} x {len(rows)}, wanted height {HEIGHT}, at most {WIDTH} wide")
    plane = array.array("f")
    for row in rows:
        plane.extend((x / 255 - 0.5) / 0.5 for x in row)
        plane.extend([0.0] * (WIDTH - len(row)))
    return plane * 3  # grey: the channels are the same


def write_npy(path, values, shape):
    header = str({"descr": "<f4", "fortran_order": False, "shape": shape})
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}f", *values))


def read_npy(path):
    data = pathlib.Path(path).read_bytes()
    if data[:8] != b"\x93NUMPY\x01\x00":
        fail(f"{path} is no .npy of version 1.0")
    end = 10 + struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:end].decode())
    if header["descr"] != "<f4" or header["fortran_order"]:
        fail(f"{path} has elements {header['descr']}, wanted <f4 in C order")
    count = math.prod(header["shape"])
    return header["shape"], struct.unpack(f"<{count}f", data[end:])


def judge(picture, reference, output):
    wanted = json.loads(pathlib.Path(reference).read_text())
    shape, found = read_npy(output)
    if shape != (1, len(ANGLES)):
        fail(f"{output} has shape {shape}, wanted (1, {len(ANGLES)})")
    best = max(range(len(found)), key=found.__getitem__)
    difference = max(abs(f - w) for f, w in zip(found, wanted["output"], strict=True))
    if any(map(math.isnan, found)):
        difference = math.nan  # max() may drop it
    print(f"{pathlib.Path(picture).name}: {ANGLES[best]} degrees ({found[best]:.4f}), "
          f"largest difference from float64 {difference:.1e}")
    if ANGLES[best] != wanted["degrees"]:
        fail(f"{picture} is turned by {wanted['degrees']} degrees, the network says {ANGLES[best]}")
    if not difference <= TOLERANCE:  # NaN too
        fail(f"{picture}: the difference is above {TOLERANCE:.0e}")


def main(arguments):
    match arguments:
        case ["input", picture, target]:
            write_npy(target, network_input(picture), (1, 3, HEIGHT, WIDTH))
        case ["judge", picture, reference, output]:
            judge(picture, reference, output)
        case _:
            print(__doc__, file=sys.stderr)
            sys.exit(64)


if __name__ == "__main__":
    main(sys.argv[1:])
