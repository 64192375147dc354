/** A text that the browser keeps under a key; where it keeps nothing, the text lives as long as the tab. */
export function stored(key: string) {
  let inMemory: string | null = null;
  return {
    read: (): string | null => {
      try {
        return localStorage.getItem(key) ?? inMemory;
      } catch {
        return inMemory;
      }
    },
    write: (text: string | null) => {
      inMemory = text;
      try {
        if (text === null) localStorage.removeItem(key);
        else localStorage.setItem(key, text);
        inMemory = null;
      } catch {
        // Storage is blocked or full.
      }
    },
  };
}
