// All acts of operators.

import './governed-acts.test.js';
