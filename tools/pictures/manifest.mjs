// docs/pictures and its list of pictures.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './demo-service.mjs';

export const FOLDER = join(ROOT, 'docs/pictures');
const MANIFEST = join(FOLDER, 'pictures.json');

export const readManifest = () => JSON.parse(readFileSync(MANIFEST, 'utf8'));

/** Writes a picture, and returns what the list says about it. */
export function writePicture(name, { data, width, height }, facts) {
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, name), data);
  return [name, { width, height, bytes: data.length, ...facts }];
}

export const writeManifest = (pictures) =>
  writeFileSync(MANIFEST, `${JSON.stringify({ pictures: Object.fromEntries(pictures) }, null, 2)}\n`);
