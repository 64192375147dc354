export interface Zoom {
  min: number;
  max: number;
}

/** Such as "steps 12 to 40". */
export function zoomText({ min, max }: Zoom): string {
  return `steps ${Math.ceil(min)} to ${Math.floor(max)}`;
}
