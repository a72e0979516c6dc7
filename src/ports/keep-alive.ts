/** Keeps the process from ending before `work` has: timers and queued tasks of the runtime do not. */
export type KeepAlive = <T>(work: Promise<T>) => Promise<T>;
