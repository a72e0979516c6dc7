export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: unknown): void;
}

/** A promise that somebody else settles. */
export function defer<T>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** Whoever does not wait for the end need not hear that nobody will tell it. */
export function quietly<T>(deferred: Deferred<T>): Deferred<T> {
  deferred.promise.catch(() => undefined);
  return deferred;
}
