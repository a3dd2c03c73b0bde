# SPDX-License-Identifier: MPL-2.0
"""A corpus of videos to label maps and tables, on this machine or a Ray cluster; docs/corpus.md says how it is used.

`output` is the rule for all that is written, `records` the border where records come in. `storage` knows folders and
buckets, `source` the videos of one, `lock` and `scratch` who works there and with what. `manifest` says what there is
to do. `task` does one piece of it wherever it runs, `program` is the process that it asks, `workers` are where pieces
run, `clip` is the way of a clip through its pieces, `driver` gives them out and counts tries, `report` tells people.
"""
