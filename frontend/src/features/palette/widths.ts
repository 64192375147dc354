export const PALETTE_WIDTH = 208;
export const RAIL_WIDTH = 52;
