// One string prompt, with every note on stderr as a note of ours.
import { asked, follow, note, options, sdk } from './stage.mjs'

options.stderr = text => note('stderr', text)
await follow(sdk.query({ prompt: asked.prompts[0], options }))
