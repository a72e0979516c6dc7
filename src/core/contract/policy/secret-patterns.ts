import Type, { type Static } from 'typebox';
import { closed, OneOf } from '../shapes.js';

export const SECRET_CHARACTERS = ['hex', 'alphanumeric', 'base64url', 'base64', 'visible', 'block'] as const;

/** A secret by its beginning, and by the characters that follow. It has no regular expression, which could be slow. */
export const SecretPattern = Type.Object(
  {
    name: Type.String({ pattern: '^[a-z][a-z0-9_]{0,39}$' }),
    /** Case-sensitive. */
    prefix: Type.String({ minLength: 2, maxLength: 80 }),
    characters: OneOf(SECRET_CHARACTERS),
    /** The least number of characters after the prefix. */
    min: Type.Integer({ minimum: 1, maximum: 4_096 }),
  },
  closed,
);
/** A pattern that conforms to the schema `SecretPattern`. */
export type SecretPattern = Static<typeof SecretPattern>;

/** The patterns of a policy without `secrets`. */
export const DEFAULT_SECRETS: readonly SecretPattern[] = [
  { name: 'private_key', prefix: '-----BEGIN PRIVATE KEY-----', characters: 'block', min: 16 },
  { name: 'private_key', prefix: '-----BEGIN RSA PRIVATE KEY-----', characters: 'block', min: 16 },
  { name: 'private_key', prefix: '-----BEGIN EC PRIVATE KEY-----', characters: 'block', min: 16 },
  { name: 'private_key', prefix: '-----BEGIN OPENSSH PRIVATE KEY-----', characters: 'block', min: 16 },
  { name: 'aws_key', prefix: 'AKIA', characters: 'alphanumeric', min: 16 },
  { name: 'aws_key', prefix: 'ASIA', characters: 'alphanumeric', min: 16 },
  { name: 'github_token', prefix: 'ghp_', characters: 'alphanumeric', min: 36 },
  { name: 'github_token', prefix: 'gho_', characters: 'alphanumeric', min: 36 },
  { name: 'github_token', prefix: 'ghs_', characters: 'alphanumeric', min: 36 },
  { name: 'github_token', prefix: 'github_pat_', characters: 'base64url', min: 22 },
  { name: 'gitlab_token', prefix: 'glpat-', characters: 'base64url', min: 20 },
  { name: 'npm_token', prefix: 'npm_', characters: 'alphanumeric', min: 36 },
  { name: 'slack_token', prefix: 'xoxb-', characters: 'base64url', min: 20 },
  { name: 'slack_token', prefix: 'xoxp-', characters: 'base64url', min: 20 },
  // Words with hyphens are no keys: `task-management-and-planning.ts`.
  { name: 'model_key', prefix: 'sk-', characters: 'alphanumeric', min: 32 },
  { name: 'model_key', prefix: 'sk-ant-', characters: 'base64url', min: 20 },
  { name: 'model_key', prefix: 'sk-proj-', characters: 'base64url', min: 20 },
  { name: 'model_key', prefix: 'sk-svcacct-', characters: 'base64url', min: 20 },
  { name: 'model_key', prefix: 'sk-lf-', characters: 'base64url', min: 20 },
  { name: 'model_key', prefix: 'sk-or-', characters: 'base64url', min: 20 },
  { name: 'google_key', prefix: 'AIza', characters: 'base64url', min: 35 },
  { name: 'jwt', prefix: 'eyJhbGciOi', characters: 'visible', min: 40 },
];
