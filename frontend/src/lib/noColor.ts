/** Stands for `d3-color` in the packages of React Flow, which ask of a text whether it is a colour: none is. */
export function color() {
  return null;
}

export { color as cubehelix, color as hcl, color as hsl, color as lab, color as rgb };
