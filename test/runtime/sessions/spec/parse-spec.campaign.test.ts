// Specs as large as they may be, and as hostile.

import './parse-spec.test.js';
