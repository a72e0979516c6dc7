// The modules of tools/pictures, which are plain JavaScript, and the list that they write.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ROOT } from '../sources.js';

/** The digests of a view, one for each part of its description. */
export type ViewDigests = Readonly<Record<string, string>>;

export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly bytes: number;
  readonly alt: string;
  /** For the animation only. */
  readonly milliseconds?: number;
  /** Of a still its digests, of the animation those of each moment. */
  readonly shows: ViewDigests | Readonly<Record<string, ViewDigests>>;
}

export interface Manifest {
  readonly pictures: Readonly<Record<string, Picture>>;
}

export const pictureTool = async <T>(name: string): Promise<T> =>
  (await import(pathToFileURL(join(ROOT, 'tools/pictures', name)).href)) as T;
