// 300 random trees, put down and taken up again after every input.

import './snapshot.test.js';
