class ResizeObserverStub {
  observe() {}
  unobserve() {}
  disconnect() {}
}
globalThis.ResizeObserver ??= ResizeObserverStub as unknown as typeof ResizeObserver;

globalThis.matchMedia ??= ((query: string) => ({
  matches: false,
  media: query,
  addEventListener() {},
  removeEventListener() {},
})) as unknown as typeof matchMedia;

if (typeof Element !== "undefined") Element.prototype.scrollIntoView ??= () => {};

// What opens is there at once, as it is in a page that has been looked at for a moment.
if (typeof document !== "undefined") {
  const { menuParts } = await import("@/ui/Menu");
  const { selectParts } = await import("@/ui/Select");
  await Promise.all([menuParts.bring(), selectParts.bring()]);
}

export {};
