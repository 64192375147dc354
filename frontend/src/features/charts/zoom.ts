export interface Zoom {
  min: number;
  max: number;
}

export function zoomText({ min, max }: Zoom): string {
  return `steps ${Math.ceil(min)} to ${Math.floor(max)}`;
}
