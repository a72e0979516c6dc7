// More malformed policy files.

import './policy-fuzz.test.js';
