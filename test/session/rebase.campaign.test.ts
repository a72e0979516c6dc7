// More random rebases.

import './rebase.test.js';
