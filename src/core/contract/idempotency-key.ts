/** The member of a call's `_meta` that contains its idempotency key, under our own prefix. */
export const IDEMPOTENCY_KEY = 'turnpike/idempotency-key';
