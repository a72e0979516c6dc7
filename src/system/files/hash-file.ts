import { createHash } from 'node:crypto';
import { openRegular, readPieces } from './open-file.js';

/** The SHA-256 of a whole file, in lower-case hex. @throws NotAFile; errors of the operating system */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  const file = await openRegular(path);
  try {
    for await (const piece of readPieces(file)) hash.update(piece);
    return hash.digest('hex');
  } finally {
    await file.close();
  }
}
