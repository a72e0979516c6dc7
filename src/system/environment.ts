/** The environment variables of this process. */
export const readEnvironment = (): Readonly<Record<string, string | undefined>> => process.env;

/** The token in an environment variable. @throws Error that names the variable, never the token */
export function readToken(name: string | undefined): string | null {
  if (name === undefined) return null;
  const token = process.env[name];
  if (token === undefined) throw new Error(`the environment variable ${name} is not set`);
  if (!/^[\x21-\x7e]{1,8192}$/u.test(token)) throw new Error(`the environment variable ${name} holds no token`);
  return token;
}
