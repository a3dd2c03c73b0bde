// SPDX-License-Identifier: MPL-2.0
// Reads label map, region table and events of every frame from the metadata: read_labels FILE [FRAMES]. A line a frame.
//
// cc -o read_labels examples/read_labels.c $(pkg-config --cflags --libs gstreamer-app-1.0 gstreamer-video-1.0)
#include <gst/app/app.h>
#include <gst/video/video.h>
#include <stdlib.h>

// Layouts, written by tests/texts/records.rs.
// One region; record i belongs to label i; 40 bytes, little endian.
typedef struct {
  guint32 track_id;  // Name of the region over time; the label where `temporal` is off
  guint32 area;  // Number of pixels [px]
  gfloat centroid[2];  // Centroid, x then y; pixel centers have integer coordinates [px]
  guint8 mean_rgb[4];  // Mean R', G', B', rounded half up [code values]
  gfloat mean_lab[3];  // Mean CIE L, a, b (D65) [Lab units]
  guint16 bounds[4];  // Bounding box: x0, y0, x1, y1; x1 and y1 exclusive [px]
} Region;
G_STATIC_ASSERT(sizeof(Region) == 40);

// What became of a region since the last frame, or a cut; 16 bytes, little endian.
typedef struct {
  guint32 kind;  // 1 birth, 2 split, 3 death, 4 merge, 5 cut
  guint32 track_id;  // The region that is new or gone; 0 for a cut
  guint32 other;  // The region that it split off from or merged into; else 0
  guint32 area;  // Its pixels: where it is new in this frame, where it is gone in the last [px]
} Event;
G_STATIC_ASSERT(sizeof(Event) == 16);
// End of the layouts.

// Counts the pixels of each label and compares them with the table. Whoever made the frame may have been wrong about it: no
// size is believed that the memory does not hold.
static gboolean check(GstBuffer *labels, GstBuffer *table, guint regions, guint width, guint height) {
  GstVideoMeta *layout = gst_buffer_get_video_meta(labels);
  // Rows of GRAY16_LE end at multiples of 4 bytes where nothing else is said.
  guint64 row = 2 * (guint64)width, offset = 0, stride = GST_ROUND_UP_4(row);
  GstMapInfo plane, records;
  gboolean good;

  if (layout) {
    if (layout->format != GST_VIDEO_FORMAT_GRAY16_LE || layout->width != width || layout->height != height ||
        layout->stride[0] < 0 || (guint64)layout->stride[0] < row)
      return FALSE;
    offset = layout->offset[0];
    stride = layout->stride[0];
  }
  if (width == 0 || height == 0 || width > 16384 || height > 16384 || regions == 0 || regions > 65535) return FALSE;
  // Label maps on a device come down when they are mapped.
  if (!gst_buffer_map(labels, &plane, GST_MAP_READ)) return FALSE;
  if (!gst_buffer_map(table, &records, GST_MAP_READ)) {
    gst_buffer_unmap(labels, &plane);
    return FALSE;
  }
  good = offset <= plane.size && (height - 1) * stride + row <= plane.size - offset && records.size == regions * sizeof(Region);
  guint32 *areas = g_new0(guint32, regions);
  for (guint y = 0; good && y < height; y++) {
    const guint8 *line = plane.data + offset + y * stride;
    for (guint x = 0; good && x < width; x++) {
      const guint label = GST_READ_UINT16_LE(line + 2 * x);
      good = label < regions || label == 65535;  // outside of a mask
      if (label < regions) areas[label]++;
    }
  }
  for (guint i = 0; good && i < regions; i++)
    good = GST_READ_UINT32_LE(records.data + i * sizeof(Region) + G_STRUCT_OFFSET(Region, area)) == areas[i];
  g_free(areas);
  gst_buffer_unmap(table, &records);
  gst_buffer_unmap(labels, &plane);
  return good;
}

// Counts the regions that are new and those that are gone. FALSE where the buffer holds no whole records.
static gboolean count_events(GstBuffer *events, guint *born, guint *gone) {
  GstMapInfo records;
  gboolean good;

  if (!gst_buffer_map(events, &records, GST_MAP_READ)) return FALSE;
  good = records.size % sizeof(Event) == 0;
  for (gsize at = 0; good && at < records.size; at += sizeof(Event)) {
    const guint kind = GST_READ_UINT32_LE(records.data + at + G_STRUCT_OFFSET(Event, kind));
    *born += kind == 1 || kind == 2;
    *gone += kind == 3 || kind == 4;
  }
  gst_buffer_unmap(events, &records);
  return good;
}

static gboolean report(guint number, GstBuffer *buffer) {
  GstCustomMeta *meta = gst_buffer_get_custom_meta(buffer, "GstSuperpixelMeta");
  GstBuffer *labels = NULL, *table = NULL, *events = NULL;
  guint regions, width, height, born = 0, gone = 0;
  gboolean good = FALSE;

  // Fields of another type count as missing. The buffers are references of our own, and outlive the frame.
  if (meta && gst_structure_get(gst_custom_meta_get_structure(meta), "labels", GST_TYPE_BUFFER, &labels, "table",
                                GST_TYPE_BUFFER, &table, "regions", G_TYPE_UINT, &regions, "width", G_TYPE_UINT, &width,
                                "height", G_TYPE_UINT, &height, NULL))
    good = labels && table && check(labels, table, regions, width, height);
  // Frames have no events where nobody asks for them.
  if (good && gst_structure_get(gst_custom_meta_get_structure(meta), "events", GST_TYPE_BUFFER, &events, NULL))
    good = events && count_events(events, &born, &gone);
  if (good)
    g_print("frame %u: %ux%u, %u regions, mean area %.1f px, %u new, %u gone\n", number, width, height, regions,
            (gdouble)width * height / regions, born, gone);
  else
    g_printerr("error: frame %u carries no superpixels, or labels and table contradict each other\n", number);
  gst_clear_buffer(&labels);
  gst_clear_buffer(&table);
  gst_clear_buffer(&events);
  return good;
}

int main(int argc, char **argv) {
  gst_init(&argc, &argv);
  if (argc < 2) {
    g_printerr("usage: read_labels FILE [FRAMES]\n");
    return 2;
  }
  const guint frames = argc > 2 ? (guint)atoi(argv[2]) : 25;
  GError *error = NULL;
  GstElement *pipeline = gst_parse_launch(
      "filesrc name=file ! decodebin ! videoconvert ! superpixel superpixels=1000 overlay=none events=true ! appsink name=out sync=false", &error);
  if (error) {
    g_printerr("error: %s\n", error->message);
    return 1;
  }
  GstElement *file = gst_bin_get_by_name(GST_BIN(pipeline), "file");
  GstElement *out = gst_bin_get_by_name(GST_BIN(pipeline), "out");
  g_object_set(file, "location", argv[1], NULL);
  gst_element_set_state(pipeline, GST_STATE_PLAYING);

  guint seen = 0;
  gboolean good = TRUE;
  while (good && seen < frames) {
    GstSample *sample = gst_app_sink_try_pull_sample(GST_APP_SINK(out), 30 * GST_SECOND);
    if (!sample) break;
    good = report(seen++, gst_sample_get_buffer(sample));
    gst_sample_unref(sample);
  }
  GstBus *bus = gst_element_get_bus(pipeline);
  GstMessage *message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
  if (message) {
    gst_message_parse_error(message, &error, NULL);
    g_printerr("error: %s\n", error->message);
    g_clear_error(&error);
    gst_message_unref(message);
    good = FALSE;
  }
  gst_element_set_state(pipeline, GST_STATE_NULL);
  gst_object_unref(bus);
  gst_object_unref(file);
  gst_object_unref(out);
  gst_object_unref(pipeline);
  return good && seen > 0 ? 0 : 1;
}
