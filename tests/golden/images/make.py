"""Makes the images of this folder and figures.json: what Pillow reads of each, in its own channels, as grey and as colour.

    python3 -m venv venv && venv/bin/pip install pillow && venv/bin/python tests/golden/images/make.py

The figures are Pillow's (convert("L"), convert("RGB")) at 8 bits and below. At 16 bits Pillow keeps the high byte of
colours and clips greys, so there they are the written numbers / 257. Run once, by hand; the tests read what is committed.
"""
import json
import os
import random
import struct
import sys
import zlib

from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
DICE = random.Random(20261201)
WIDTH, HEIGHT = 7, 5
FIGURES = {}
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # of a colour type


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def packed(samples, depth):
    """A row's samples as PNG stores them."""
    if depth == 16:
        return b"".join(struct.pack(">H", s) for s in samples)
    bits = "".join(format(s, f"0{depth}b") for s in samples)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


def png(rows, kind, depth, extra=(), interlace=False):
    """`rows` of samples; `extra` are chunks before the pixels."""
    count = CHANNELS[kind]
    passes = [(0, 0, 1, 1)]
    if interlace:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    data = b""
    for x0, y0, dx, dy in passes:
        for y in range(y0, HEIGHT, dy):
            samples = [s for x in range(x0, WIDTH, dx) for s in rows[y][x * count:(x + 1) * count]]
            if samples:
                data += b"\0" + packed(samples, depth)
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, depth, kind, 0, 0, 1 if interlace else 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(chunk(k, b) for k, b in extra) +
            chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))


def flat(image):
    return [value for pixel in image.getdata() for value in (pixel if isinstance(pixel, tuple) else (pixel,))]


def luma(r, g, b):
    return int((19595 * r + 38470 * g + 7471 * b) / 65536 + 0.5)


def add(name, content, own=None, bound=0, transparent=False, turned=False, deep=None):
    path = os.path.join(HERE, name)
    with open(path, "wb") as file:
        file.write(content)
    if deep is not None:  # 16 bits: (channels, samples without alpha)
        channels, samples = deep
        values = [s / 257 for s in samples]
        grey = values if channels == 1 else [luma(*values[i:i + 3]) for i in range(0, len(values), 3)]
        colour = values if channels == 3 else [v for v in values for _ in range(3)]
        own = values
    else:
        with Image.open(path) as image:
            grey = flat(image.convert("L"))
            colour = flat(image.convert("RGB"))
            single = image.mode in ("1", "L", "LA") or (image.mode == "I;16")
        own = grey if single else colour
    FIGURES[name] = {"height": HEIGHT, "width": WIDTH, "bound": bound, "transparent": transparent, "turned": turned,
                     "own": own, "grey": grey, "colour": colour}


def exif(orientation, order="<"):
    mark = b"II*\0" if order == "<" else b"MM\0*"
    return mark + struct.pack(order + "IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)


def make_png():
    for kind, depths in [(0, [1, 2, 4, 8, 16]), (2, [8, 16]), (3, [1, 2, 4, 8]), (4, [8, 16]), (6, [8, 16])]:
        for depth in depths:
            count = CHANNELS[kind]
            most = 2 ** depth - 1
            rows = [[DICE.randint(0, most) for _ in range(WIDTH * count)] for _ in range(HEIGHT)]
            palette = [(b"PLTE", bytes(DICE.randint(0, 255) for _ in range(3 * (most + 1))))] if kind == 3 else []
            alpha = kind in (4, 6)
            deep = None
            if depth == 16:
                colours = 1 if kind in (0, 4) else 3
                deep = (colours, [s for row in rows for x in range(WIDTH) for s in row[x * count:x * count + colours]])
            for interlace in (False, True):
                tail = "-interlaced" if interlace else ""
                add(f"type{kind}-{depth}{tail}.png", png(rows, kind, depth, palette, interlace), transparent=alpha, deep=deep)
            if depth == 8:  # colour management and transparency leave the numbers alone
                add(f"type{kind}-8-gamma.png", png(rows, kind, 8, [(b"gAMA", struct.pack(">I", 100000))] + palette),
                    transparent=alpha)
                add(f"type{kind}-8-srgb.png",
                    png(rows, kind, 8, [(b"sRGB", b"\0"), (b"gAMA", struct.pack(">I", 45455)),
                                        (b"cHRM", struct.pack(">8I", 31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000))]
                        + palette), transparent=alpha)
                add(f"type{kind}-8-profile.png",
                    png(rows, kind, 8, [(b"iCCP", b"p\0\0" + zlib.compress(b"\0" * 128))] + palette), transparent=alpha)
                add(f"type{kind}-8-turned.png", png(rows, kind, 8, palette + [(b"eXIf", exif(6, ">"))]), transparent=alpha,
                    turned=True)
            if kind == 3 and depth in (2, 8):
                add(f"type3-{depth}-transparent.png", png(rows, 3, depth, palette + [(b"tRNS", b"\0\x80\xff")]), transparent=True)
            if kind == 0 and depth in (2, 8):
                add(f"type0-{depth}-transparent.png", png(rows, 0, depth, [(b"tRNS", struct.pack(">H", rows[0][0]))]),
                    transparent=True)
            if kind == 2 and depth == 8:
                add("type2-8-transparent.png", png(rows, 2, 8, [(b"tRNS", struct.pack(">3H", *rows[0][:3]))]), transparent=True)


def make_jpeg():
    grey = Image.new("L", (WIDTH, HEIGHT))
    grey.putdata([DICE.randint(0, 255) for _ in range(WIDTH * HEIGHT)])
    colour = Image.new("RGB", (WIDTH, HEIGHT))
    colour.putdata([tuple(DICE.randint(0, 255) for _ in range(3)) for _ in range(WIDTH * HEIGHT)])
    jobs = [("grey", grey, {}), ("444", colour, {"subsampling": 0}), ("422", colour, {"subsampling": 1}),
            ("420", colour, {"subsampling": 2}), ("progressive", colour, {"progressive": True}),
            ("rgb", colour, {"keep_rgb": True}), ("turned", colour, {"exif": b"Exif\0\0" + exif(3)}),
            ("upright", colour, {"exif": b"Exif\0\0" + exif(1)}), ("profile", colour, {"icc_profile": b"\0" * 128}),
            ("restart", colour, {"restart_marker_blocks": 1})]
    for name, image, options in jobs:
        path = os.path.join(HERE, f"jpeg-{name}.jpg")
        image.save(path, quality=92, **options)
        with open(path, "rb") as file:
            add(f"jpeg-{name}.jpg", file.read(), bound=1, turned=name == "turned")
    path = os.path.join(HERE, "refused-cmyk.jpg")
    colour.convert("CMYK").save(path, quality=92)
    with open(path, "rb") as file:
        content = file.read()
    at = content.index(b"Adobe")
    with open(os.path.join(HERE, "refused-ycck.jpg"), "wb") as file:
        file.write(content[:at + 11] + b"\2" + content[at + 12:])  # the colour transform of YCCK


def main():
    make_png()
    make_jpeg()
    with open(os.path.join(HERE, "figures.json"), "w", encoding="utf-8") as file:
        json.dump(FIGURES, file, separators=(",", ":"))
        file.write("\n")
    print(f"{len(FIGURES)} images", file=sys.stderr)


main()
