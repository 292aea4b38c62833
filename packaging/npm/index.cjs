'use strict'

// Path of the `whimbrel` program in this package.
exports.path = require('node:path').join(__dirname, 'bin', 'whimbrel')
