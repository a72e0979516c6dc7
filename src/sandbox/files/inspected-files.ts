import { closeSync } from 'node:fs';

/** A file that was in its place when its facts were gathered, open without access to its content (O_PATH). */
export interface InspectedFile {
  readonly fd: number;
  /** Its path on the host at that time. */
  readonly path: string;
}

/** Maximum number of files that stay open for their reads. */
const FILES_MAX = 64;

/**
 * Files that stay open from their facts to their reads, within one synchronous turn of the program. The read then
 * reaches the very file that the decision was about, and need not open its path again.
 */
export class InspectedFiles {
  readonly #files = new Map<string, InspectedFile[]>();
  #count = 0;

  /** Takes over the descriptor. */
  add(case_id: string, path: string, file: InspectedFile): void {
    if (this.#count === FILES_MAX) {
      closeSync(file.fd);
      return;
    }
    if (this.#count === 0) queueMicrotask(() => this.close());
    this.#count += 1;
    const key = keyOf(case_id, path);
    const files = this.#files.get(key);
    if (files === undefined) this.#files.set(key, [file]);
    else files.push(file);
  }

  /** Hands the descriptor over to the caller. @returns null if no facts about the file were gathered in this turn */
  take(case_id: string, path: unknown): InspectedFile | null {
    if (this.#count === 0 || typeof path !== 'string') return null;
    const file = this.#files.get(keyOf(case_id, path))?.pop() ?? null;
    if (file !== null) this.#count -= 1;
    return file;
  }

  close(): void {
    for (const files of this.#files.values()) for (const { fd } of files) closeSync(fd);
    this.#files.clear();
    this.#count = 0;
  }
}

// A path has no NUL character.
const keyOf = (case_id: string, path: string): string => `${case_id}\0${path}`;
