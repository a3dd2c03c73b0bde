# SPDX-License-Identifier: MPL-2.0
"""A corpus of videos to label maps and tables, on this machine or a Ray cluster; docs/corpus.md says how it is used.

`storage` knows folders and buckets, `manifest` what there is to do, `task` does one piece of it wherever it runs, `program` is the
process that it asks, `workers` are where pieces run, `clip` is the way of a clip through its pieces, `driver` gives them out and counts
tries, `report` tells people.
"""
