/** The service log, for operators. It never contains payloads, file contents or reasoning. */
export interface Log {
  /** Logs a normal event. */
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** Logs a problem that Turnpike handles by itself. */
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  /** Logs a failure that needs the operator. */
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}
