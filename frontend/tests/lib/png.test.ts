import { crc32, deflateSync } from "node:zlib";
import { expect, it } from "vitest";
import { isPng, readPngText, writePngText } from "@/lib/png";

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}

/** One black pixel, written by other code than ours. */
function pixel(): Uint8Array {
  const head = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]);
  return new Uint8Array(
    Buffer.concat([
      Buffer.from("89504e470d0a1a0a", "hex"),
      chunk("IHDR", head),
      chunk("IDAT", deflateSync(Buffer.from([0, 0]))),
      chunk("IEND", Buffer.alloc(0)),
    ]),
  );
}

const YAML = "name: größer\nedges: [a.x -> b.y]\nnote: |\n  two\n  lines – of 数学\n";

it("a text that is put into a picture is read from it again, and the picture stays a PNG", () => {
  const png = pixel();

  const written = writePngText(png, "coloop", YAML);

  expect(isPng(written)).toBe(true);
  expect(readPngText(written, "coloop")).toBe(YAML);
  expect(readPngText(written, "other")).toBeNull();
  expect(readPngText(png, "coloop")).toBeNull();
  // What was there is there, and the checksum is the one of zlib.
  const text = written.subarray(png.length - 12, written.length - 12);
  const view = new DataView(text.buffer, text.byteOffset, text.byteLength);
  expect(Buffer.from(text.subarray(4, 8)).toString()).toBe("iTXt");
  expect(view.getUint32(text.length - 4)).toBe(crc32(text.subarray(4, -4)));
  expect(view.getUint32(0)).toBe(text.length - 12);
  expect(written.subarray(0, png.length - 12)).toEqual(png.subarray(0, -12));
});

it("a damaged picture has no text, and takes none", () => {
  const written = writePngText(pixel(), "coloop", YAML);
  const damaged = written.slice();
  const at = damaged.length - 20;
  damaged[at] = (damaged[at] ?? 0) ^ 1;

  expect(readPngText(damaged, "coloop")).toBeNull();
  expect(readPngText(written.subarray(0, 40), "coloop")).toBeNull();
  expect(readPngText(new TextEncoder().encode(YAML), "coloop")).toBeNull();
  expect(() => writePngText(damaged.subarray(0, 40), "coloop", YAML)).toThrow("not a complete PNG");
});
