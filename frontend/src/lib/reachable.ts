/** What can be reached from a node along links, each from one node to another; itself as well. */
export function reachable(
  links: readonly (readonly [string, string])[],
  from: string,
): Set<string> {
  const found = new Set([from]);
  // What is added while a set is gone through is gone through as well.
  for (const at of found) for (const [start, end] of links) if (start === at) found.add(end);
  return found;
}
