# SPDX-License-Identifier: Apache-2.0
"""Makes what lies beside it; run it again only to change that.

    make_lines.py pictures               line_upright.pgm and line_turned.pgm; needs Pillow and the
                                         font of Debian's fonts-dejavu-core
    make_lines.py references MODEL.onnx  line_*.json, the network's outputs in float64; needs the
                                         Python of `./dev path python`
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
TEXT = "two pictures"
# So much white around the text that the network is sure, but not wholly: an output of 1 would hide
# most differences behind the softmax.
MARGIN = 40
HEIGHT, WIDTH = 48, 192
LINES = {"line_upright": 0, "line_turned": 180}


def draw():
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.truetype(FONT, 64)  # larger than wanted, then made smaller: smooth edges
    left, top, right, bottom = font.getbbox(TEXT)
    picture = Image.new("L", (right - left + 2 * MARGIN, bottom - top + 2 * MARGIN), 255)
    ImageDraw.Draw(picture).text((MARGIN - left, MARGIN - top), TEXT, font=font, fill=0)
    width = min(WIDTH, round(HEIGHT * picture.width / picture.height))
    picture = picture.resize((width, HEIGHT), Image.Resampling.LANCZOS)
    for name, degrees in LINES.items():
        picture.rotate(degrees).save(HERE / f"{name}.pgm")


def refer(model):
    sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "oracle")]
    import demo_data
    import numpy
    import onnx
    import oracle

    for name, degrees in LINES.items():
        values = numpy.array(demo_data.network_input(HERE / f"{name}.pgm"), numpy.float32)
        outputs = oracle.run(onnx.load(model), {"x": values.reshape(1, 3, HEIGHT, WIDTH)})
        (output,) = outputs.values()
        text = json.dumps({"degrees": degrees, "output": output.reshape(-1).tolist()})
        (HERE / f"{name}.json").write_text(text + "\n")


if sys.argv[1:] == ["pictures"]:
    draw()
elif sys.argv[1:2] == ["references"] and len(sys.argv) == 3:
    refer(sys.argv[2])
else:
    print(__doc__, file=sys.stderr)
    sys.exit(64)
