/** Names of files whose rows a dataset reads. */
const FORMATS = ["jsonl", "ndjson", "json", "parquet", "csv", "tsv", "txt", "md"];
const COMPRESSED = ["gz", "bz2", "xz", "zst"];

export const DATA_FILE = new RegExp(
  `\\.(${FORMATS.join("|")})(\\.(${COMPRESSED.join("|")}))?$`,
  "i",
);
export const DATA_SUFFIXES = [...FORMATS, ...COMPRESSED].map((one) => `.${one}`).join(",");
