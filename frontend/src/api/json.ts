/** Values that travel as plain JSON, whose shape the API does not tell. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json | undefined };
export type JsonObject = { [key: string]: Json | undefined };
