export declare function typesOf(openapi: string): Promise<string>;
