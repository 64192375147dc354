/**
 * Text inside of a PNG file, in an iTXt chunk: pictures of loops carry their YAML. Pure.
 *
 *     signature | chunk: length, type, data, checksum | … | IEND
 */

const SIGNATURE = [137, 80, 78, 71, 13, 10, 26, 10] as const;
const TEXT = "iTXt";
const END = "IEND";
const AROUND = 12;

const CHECKSUMS = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value >>> 0;
});

export function isPng(bytes: Uint8Array): boolean {
  return SIGNATURE.every((byte, at) => bytes[at] === byte);
}

export function writePngText(png: Uint8Array, keyword: string, text: string): Uint8Array {
  const end = chunks(png).find(({ type }) => type === END);
  if (!end) throw new Error("This is not a complete PNG.");
  const chunk = makeChunk(keyword, text);
  const written = new Uint8Array(png.length + chunk.length);
  written.set(png.subarray(0, end.at));
  written.set(chunk, end.at);
  written.set(png.subarray(end.at), end.at + chunk.length);
  return written;
}

export function readPngText(png: Uint8Array, keyword: string): string | null {
  for (const { type, data } of chunks(png)) {
    if (type !== TEXT) continue;
    const parts = splitText(data);
    if (parts?.keyword === keyword) return parts.text;
  }
  return null;
}

interface Chunk {
  at: number;
  type: string;
  data: Uint8Array;
}

function chunks(png: Uint8Array): Chunk[] {
  if (!isPng(png)) return [];
  const view = new DataView(png.buffer, png.byteOffset, png.byteLength);
  const found: Chunk[] = [];
  let at: number = SIGNATURE.length;
  while (at + AROUND <= png.length) {
    const length = view.getUint32(at);
    if (at + AROUND + length > png.length) break;
    const named = png.subarray(at + 4, at + 8 + length);
    if (view.getUint32(at + 8 + length) !== checksum(named)) break;
    const type = String.fromCharCode(...named.subarray(0, 4));
    found.push({ at, type, data: named.subarray(4) });
    if (type === END) break;
    at += AROUND + length;
  }
  return found;
}

/** keyword, 0, is compressed, method, language, 0, translated keyword, 0, text */
function splitText(data: Uint8Array): { keyword: string; text: string } | null {
  const first = data.indexOf(0);
  const second = data.indexOf(0, first + 3);
  const third = data.indexOf(0, second + 1);
  const isCompressed = data[first + 1] !== 0;
  if (first < 0 || second < 0 || third < 0 || isCompressed) return null;
  const decoder = new TextDecoder();
  return {
    keyword: decoder.decode(data.subarray(0, first)),
    text: decoder.decode(data.subarray(third + 1)),
  };
}

function makeChunk(keyword: string, text: string): Uint8Array {
  const encoder = new TextEncoder();
  const named = new Uint8Array([
    ...encoder.encode(TEXT + keyword),
    ...[0, 0, 0, 0, 0],
    ...encoder.encode(text),
  ]);
  const chunk = new Uint8Array(named.length + 8);
  const view = new DataView(chunk.buffer);
  view.setUint32(0, named.length - 4);
  chunk.set(named, 4);
  view.setUint32(4 + named.length, checksum(named));
  return chunk;
}

function checksum(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) {
    value = (CHECKSUMS[(value ^ byte) & 0xff] ?? 0) ^ (value >>> 8);
  }
  return (value ^ 0xffffffff) >>> 0;
}
