/** The environment variables of this process. */
export const readEnvironment = (): Readonly<Record<string, string | undefined>> => process.env;
