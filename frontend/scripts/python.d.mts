export declare const root: string;
export declare const hasPython: boolean;
export declare function ask(...words: string[]): string;
export declare function askLoops(folder?: string): string;
