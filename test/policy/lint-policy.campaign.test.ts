// The shipped policy without each of its grants and limits.

import './lint-policy.test.js';
