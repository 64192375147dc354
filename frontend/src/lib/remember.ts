/** What is made of an object, made once for as long as that object is there. */
export function remember<K extends object, V>(make: (of: K) => V): (of: K) => V {
  const known = new WeakMap<K, { value: V }>();
  return (of) => {
    let entry = known.get(of);
    if (!entry) {
      entry = { value: make(of) };
      known.set(of, entry);
    }
    return entry.value;
  };
}
