const TYPES: Record<string, string> = { yaml: "application/yaml", png: "image/png" };

export function download(name: string, content: string | Uint8Array): void {
  const type = TYPES[name.split(".").at(-1) ?? ""] ?? "application/octet-stream";
  const url = URL.createObjectURL(new Blob([content as BlobPart], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
