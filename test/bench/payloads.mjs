import { randomUUID } from 'node:crypto';

/** The measured steps. */
export const KINDS = {
  read: () => ({ action: 'READ_FILE', args: { path: '/sandbox/a/b/note.txt' } }),
  write: () => ({ action: 'WRITE_FILE', args: { path: '/sandbox/a/b/out.txt', content: 'x'.repeat(1024) } }),
  denied: () => ({ action: 'DELETE_FILE', args: { path: '/sandbox/a/b/run.sh' } }),
  think: () => ({ action: 'THINK', args: {} }),
};

export const payload = (kind) =>
  JSON.stringify({ schema_version: '1.0.0', id: randomUUID(), reasoning: 'To measure a step.', ...KINDS[kind]() });
